// links: schemas core
/* The facts of the Avro specification's own test vectors (apache/avro, share/test/data/schema-tests.txt):
 * texts, their canonical forms and CRC-64-AVRO (here in the byte order of the single-object header), and the
 * MD5 and SHA-256 of the canonical forms, computed by Python's hashlib. */
#include "schemas/fingerprint.h"
#include "schemas/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* clang-format off */
static const struct vector {
	const char *text, *canonical, *crc64, *md5, *sha256;
} vectors[] = {
	{ "\"null\"", "\"null\"",
	  "8a8f25cce724dd63", "9b41ef67651c18488a8b08bb67c75699",
	  "f072cbec3bf8841871d4284230c5e983dc211a56837aed862487148f947d1a1f" },
	{ "{\"type\":\"null\"}", "\"null\"",
	  "8a8f25cce724dd63", "9b41ef67651c18488a8b08bb67c75699",
	  "f072cbec3bf8841871d4284230c5e983dc211a56837aed862487148f947d1a1f" },
	{ "\"boolean\"", "\"boolean\"",
	  "64f7d4a478fc429f", "01f692b30d4a1c8a3e600b1440637f8f",
	  "a5b031ab62bc416d720c0410d802ea46b910c4fbe85c50a946ccc658b74e677e" },
	{ "{\"type\":\"boolean\"}", "\"boolean\"",
	  "64f7d4a478fc429f", "01f692b30d4a1c8a3e600b1440637f8f",
	  "a5b031ab62bc416d720c0410d802ea46b910c4fbe85c50a946ccc658b74e677e" },
	{ "\"int\"", "\"int\"",
	  "8f5c393f1ad57572", "ef524ea1b91e73173d938ade36c1db32",
	  "3f2b87a9fe7cc9b13835598c3981cd45e3e355309e5090aa0933d7becb6fba45" },
	{ "{\"type\":\"int\"}", "\"int\"",
	  "8f5c393f1ad57572", "ef524ea1b91e73173d938ade36c1db32",
	  "3f2b87a9fe7cc9b13835598c3981cd45e3e355309e5090aa0933d7becb6fba45" },
	{ "\"long\"", "\"long\"",
	  "b71df49344e154d0", "e1dd9a1ef98b451b53690370b393966b",
	  "c32c497df6730c97fa07362aa5023f37d49a027ec452360778114cf427965add" },
	{ "{\"type\":\"long\"}", "\"long\"",
	  "b71df49344e154d0", "e1dd9a1ef98b451b53690370b393966b",
	  "c32c497df6730c97fa07362aa5023f37d49a027ec452360778114cf427965add" },
	{ "\"float\"", "\"float\"",
	  "90d7a83ecb027c4d", "50a6b9db85da367a6d2df400a41758a6",
	  "1e71f9ec051d663f56b0d8e1fc84d71aa56ccfe9fa93aa20d10547a7abeb5cc0" },
	{ "{\"type\":\"float\"}", "\"float\"",
	  "90d7a83ecb027c4d", "50a6b9db85da367a6d2df400a41758a6",
	  "1e71f9ec051d663f56b0d8e1fc84d71aa56ccfe9fa93aa20d10547a7abeb5cc0" },
	{ "\"double\"", "\"double\"",
	  "7e95ab32c035758e", "bfc71a62f38b99d6a93690deeb4b3af6",
	  "730a9a8c611681d7eef442e03c16c70d13bca3eb8b977bb403eaff52176af254" },
	{ "{\"type\":\"double\"}", "\"double\"",
	  "7e95ab32c035758e", "bfc71a62f38b99d6a93690deeb4b3af6",
	  "730a9a8c611681d7eef442e03c16c70d13bca3eb8b977bb403eaff52176af254" },
	{ "\"bytes\"", "\"bytes\"",
	  "651920c3da16c04f", "b462f06cb909be57c85008867784cde6",
	  "9ae507a9dd39ee5b7c7e285da2c0846521c8ae8d80feeae5504e0c981d53f5fa" },
	{ "{\"type\":\"bytes\"}", "\"bytes\"",
	  "651920c3da16c04f", "b462f06cb909be57c85008867784cde6",
	  "9ae507a9dd39ee5b7c7e285da2c0846521c8ae8d80feeae5504e0c981d53f5fa" },
	{ "\"string\"", "\"string\"",
	  "c70345637248018f", "095d71cf12556b9d5e330ad575b3df5d",
	  "e9e5c1c9e4f6277339d1bcde0733a59bd42f8731f449da6dc13010a916930d48" },
	{ "{\"type\":\"string\"}", "\"string\"",
	  "c70345637248018f", "095d71cf12556b9d5e330ad575b3df5d",
	  "e9e5c1c9e4f6277339d1bcde0733a59bd42f8731f449da6dc13010a916930d48" },
	{ "[  ]", "[]",
	  "d1b93fd273e1c6ee", "d751713988987e9331980363e24189ce",
	  "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945" },
	{ "[ \"int\"  ]", "[\"int\"]",
	  "03fbb2488a6363b7", "9113bdd17a9ca5ce5ce0d32131e86fbb",
	  "c511da579364be932435a248bf3f04254e5c257664551ad10ac69cdc4170a098" },
	{ "[ \"int\" , {\"type\":\"boolean\"} ]", "[\"int\",\"boolean\"]",
	  "02160c087835d64a", "3057ca4aa1435ddfe41944dd4e7865c4",
	  "0f26ad42a4cd5964b28c6ba47665c3ef4c185b367311bba4075d6ccb880c35da" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"foo\"}", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[]}",
	  "7ebe1943c8500cbd", "aea8d9d0e93c3a26749ee0373dc49d35",
	  "ac35c07ecd88fe52d0a310135a01329b012c45ade36dd8b4880effb55b7f725c" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"foo\", \"namespace\":\"x.y\"}", "{\"name\":\"x.y.foo\",\"type\":\"record\",\"fields\":[]}",
	  "abc40e836b1a1d52", "3bfda6ca10c3f548fe00c763e764fe8b",
	  "0f67acacda3487edddb8d4a2ced6a01254e94d7fc4ede1a701bf3c335eeefafa" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"a.b.foo\", \"namespace\":\"x.y\"}", "{\"name\":\"a.b.foo\",\"type\":\"record\",\"fields\":[]}",
	  "b2e22150bee5efbf", "a00fc01b72ce0385d3aa76fb0162459c",
	  "eaaff338dec471cb04155a8003b5ed04aaaa0fe8714130da33951c25aad99ffa" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"foo\", \"doc\":\"Useful info\"}", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[]}",
	  "7ebe1943c8500cbd", "aea8d9d0e93c3a26749ee0373dc49d35",
	  "ac35c07ecd88fe52d0a310135a01329b012c45ade36dd8b4880effb55b7f725c" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"foo\", \"aliases\":[\"foo\",\"bar\"]}", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[]}",
	  "7ebe1943c8500cbd", "aea8d9d0e93c3a26749ee0373dc49d35",
	  "ac35c07ecd88fe52d0a310135a01329b012c45ade36dd8b4880effb55b7f725c" },
	{ "{\"fields\":[], \"type\":\"record\", \"name\":\"foo\", \"doc\":\"foo\", \"aliases\":[\"foo\",\"bar\"]}", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[]}",
	  "7ebe1943c8500cbd", "aea8d9d0e93c3a26749ee0373dc49d35",
	  "ac35c07ecd88fe52d0a310135a01329b012c45ade36dd8b4880effb55b7f725c" },
	{ "{\"fields\":[{\"type\":{\"type\":\"boolean\"}, \"name\":\"f1\"}], \"type\":\"record\", \"name\":\"foo\"}", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[{\"name\":\"f1\",\"type\":\"boolean\"}]}",
	  "3ba368c9f1ead86c", "a4678ca1c06038a1246f38953c3effab",
	  "87c762d52b47d4508fa3eaffb75040e83ce042e73d214a986319f3d58d3cc206" },
	{ "{ \"fields\":[{\"type\":\"boolean\", \"aliases\":[], \"name\":\"f1\", \"default\":true}, {\"order\":\"descending\",\"name\":\"f2\",\"doc\":\"Hello\",\"type\":\"int\"}], \"type\":\"record\", \"name\":\"foo\" }", "{\"name\":\"foo\",\"type\":\"record\",\"fields\":[{\"name\":\"f1\",\"type\":\"boolean\"},{\"name\":\"f2\",\"type\":\"int\"}]}",
	  "4a93f457bd058dbc", "10623f8e6c46ed14e854a9d5cab39d1a",
	  "379b7b88c35030d89381969af4c6bf60fdc60ca316839126034e289bb537470e" },
	{ "{\"type\":\"enum\", \"name\":\"foo\", \"symbols\":[\"A1\"]}", "{\"name\":\"foo\",\"type\":\"enum\",\"symbols\":[\"A1\"]}",
	  "6931aa159e03fca7", "1ffaba116878bb9e570df8a2cf397b3c",
	  "16427d1b85df4dd885d83e56f21e2d39a669e030a0563f3afe78020276a8c70c" },
	{ "{\"namespace\":\"x.y.z\", \"type\":\"enum\", \"name\":\"foo\", \"doc\":\"foo bar\", \"symbols\":[\"A1\", \"A2\"]}", "{\"name\":\"x.y.z.foo\",\"type\":\"enum\",\"symbols\":[\"A1\",\"A2\"]}",
	  "8b9d99f4e53a43c2", "e87771508a83ffe201068d4985fe3088",
	  "09e54a6cbd9f7b971f8f827f6096c6bc0e56092bc055f9e227d7e3b7ea166228" },
	{ "{\"name\":\"foo\",\"type\":\"fixed\",\"size\":15}", "{\"name\":\"foo\",\"type\":\"fixed\",\"size\":15}",
	  "04a531edc32e6018", "b0cf9227ad58a83b195b5aeb4593140f",
	  "802428b30753d93ff41de7ee0e319755f8765c014184311efe67b06453b545e5" },
	{ "{\"namespace\":\"x.y.z\", \"type\":\"fixed\", \"name\":\"foo\", \"doc\":\"foo bar\", \"size\":32}", "{\"name\":\"x.y.z.foo\",\"type\":\"fixed\",\"size\":32}",
	  "1e17a69376d479d5", "f98e78bd4f2bb5ea02db3586ebc98eaf",
	  "b8198459e3381d2944ac890efdc06d71840f552ddced09f22b0b2ec3ab4e1e6b" },
	{ "{ \"items\":{\"type\":\"null\"}, \"type\":\"array\"}", "{\"type\":\"array\",\"items\":\"null\"}",
	  "6d0a17682f3fd1f7", "c42be72bd428286877d7797255808cf3",
	  "b1073d253f56ccfdbb59e0a954bc8116b3df0a1382db3d735582b7d9b6c21c13" },
	{ "{ \"values\":\"string\", \"type\":\"map\"}", "{\"type\":\"map\",\"values\":\"string\"}",
	  "724586925d96ce86", "a236344d3b2bbe2cc09439868bfc7168",
	  "52bf173d92fa85cec682a0ad4186c96c9f5147e4881bd1c7154dba8bb4515297" },
	{ "{\"name\":\"PigValue\",\"type\":\"record\", \"fields\":[{\"name\":\"value\", \"type\":[\"null\", \"int\", \"long\", \"PigValue\"]}]}", "{\"name\":\"PigValue\",\"type\":\"record\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\",\"long\",\"PigValue\"]}]}",
	  "5be9b75666dc95e7", "112b8fd4b847e005ecaecb6c41cb4a76",
	  "7844d3a484ec5fc907e35c8a9fd69ae0af4ff70b241835efbd0acdaf62433ec7" },
};
/* clang-format on */

static const char *hex(const uint8_t *bytes, size_t len, char *text)
{
	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text;
}

static void check_vector(const struct vector *vector)
{
	struct error error = { 0 };
	struct schema *schema = NULL;
	struct buffer canonical;
	uint8_t bytes[32];
	char text[65];

	if (schema_parse(&schema, view_of(vector->text), &error) != FATE_OK)
		fail_msg("%s: %s", vector->text, error.message);
	buffer_init(&canonical, SCHEMA_CANONICAL_MAX);
	assert_int_equal(schema_canonical(schema, &canonical, &error), FATE_OK);
	buffer_append_byte(&canonical, '\0');
	assert_string_equal((const char *)canonical.data, vector->canonical);
	struct view view = { canonical.data, canonical.len - 1 };
	fingerprint_hex(fingerprint_crc64(view), text);
	assert_string_equal(text, vector->crc64);
	fingerprint_md5(view, bytes);
	assert_string_equal(hex(bytes, 16, text), vector->md5);
	fingerprint_sha256(view, bytes);
	assert_string_equal(hex(bytes, 32, text), vector->sha256);
	buffer_done(&canonical);
	schema_free(schema);
}

static void test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		check_vector(&vectors[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
