/* test_schemas_words.h - schemas in few words, for tables of tests. */
#ifndef FERMATA_TESTS_UNIT_TEST_SCHEMAS_WORDS_H
#define FERMATA_TESTS_UNIT_TEST_SCHEMAS_WORDS_H

#define REC(name, fields) "{\"type\":\"record\",\"name\":\"" name "\",\"fields\":[" fields "]}"
#define F(name, type)     "{\"name\":\"" name "\",\"type\":" type "}"
#define FX(name, type, x) "{\"name\":\"" name "\",\"type\":" type "," x "}"
#define ENUM(name, list)  "{\"type\":\"enum\",\"name\":\"" name "\",\"symbols\":[" list "]}"
#define FIXED(name, size) "{\"type\":\"fixed\",\"name\":\"" name "\",\"size\":" #size "}"
#define ARRAY(item)       "{\"type\":\"array\",\"items\":" item "}"
#define MAP(item)         "{\"type\":\"map\",\"values\":" item "}"
#define DECIMAL(p, s)     "{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":" #p ",\"scale\":" #s "}"
#define INT               "\"int\""
#define LONG              "\"long\""
#define FLOAT             "\"float\""
#define DOUBLE            "\"double\""
#define STRING            "\"string\""
#define BYTES             "\"bytes\""
#define NULLABLE(type)    "[\"null\"," type "]"

#endif
