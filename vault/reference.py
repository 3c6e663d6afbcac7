#!/usr/bin/env python3
"""Format 1 of format.h once more, in slow and plain Python with nothing but the standard library.

Written from the text of format.h and not from the C code, so that the two can check each other:
    reference.py vectors    prints the vectors that tests/unit/test_vault_vector.c opens
    reference.py open       opens one sealed thing, given as JSON on stdin (the fields of a row, bytes in
                            hex, and "kek": the key's text), and writes its content to stdout: for the day
                            when there is a database and a keyring and no program. A zstd frame is left for
                            the zstd command to expand.
"""
import base64
import hashlib
import hmac
import json
import struct
import sys
import uuid

MASK = 0xFFFFFFFF


def quarter(s, a, b, c, d):
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & MASK
        v = s[z] ^ s[x]
        s[z] = ((v << turn) | (v >> (32 - turn))) & MASK


def rounds(state):
    s = list(state)
    for _ in range(10):
        for q in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                  (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(s, *q)
    return s


SIGMA = struct.unpack("<4I", b"expand 32-byte k")


def chacha20(key, nonce, counter, data):
    """RFC 8439, section 2.4."""
    out = bytearray()
    for i in range(0, len(data), 64):
        state = SIGMA + struct.unpack("<8I", key) + (counter + i // 64,) + struct.unpack("<3I", nonce)
        stream = struct.pack("<16I", *((a + b) & MASK for a, b in zip(rounds(state), state)))
        out += bytes(a ^ b for a, b in zip(data[i:i + 64], stream))
    return bytes(out)


def hchacha20(key, nonce):
    """draft-irtf-cfrg-xchacha, section 2.2."""
    s = rounds(SIGMA + struct.unpack("<8I", key) + struct.unpack("<4I", nonce))
    return struct.pack("<8I", *s[:4], *s[12:])


def poly1305(key, data):
    """RFC 8439, section 2.5."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for i in range(0, len(data), 16):
        total = (total + int.from_bytes(data[i:i + 16] + b"\1", "little")) * r % (2 ** 130 - 5)
    return ((total + int.from_bytes(key[16:], "little")) % 2 ** 128).to_bytes(16, "little")


def aead_parts(key, nonce24):
    return hchacha20(key, nonce24[:16]), bytes(4) + nonce24[16:]


def aead_tag(key, nonce, aad, ciphertext):
    def padded(data):
        return data + bytes(-len(data) % 16)
    one_time = chacha20(key, nonce, 0, bytes(64))[:32]
    return poly1305(one_time, padded(aad) + padded(ciphertext) + struct.pack("<QQ", len(aad), len(ciphertext)))


def aead_seal(key, nonce24, aad, plain):
    key, nonce = aead_parts(key, nonce24)
    ciphertext = chacha20(key, nonce, 1, plain)
    return ciphertext + aead_tag(key, nonce, aad, ciphertext)


def aead_open(key, nonce24, aad, sealed):
    key, nonce = aead_parts(key, nonce24)
    ciphertext, tag = sealed[:-16], sealed[-16:]
    if not hmac.compare_digest(tag, aead_tag(key, nonce, aad, ciphertext)):
        sys.exit("reference.py: the tag does not verify")
    return chacha20(key, nonce, 1, ciphertext)


def kdf(key, number, context):
    return hashlib.blake2b(b"", digest_size=32, key=key, salt=struct.pack("<QQ", number, 0),
                           person=context + bytes(8)).digest()


def field(data):
    return struct.pack("<I", len(data)) + data


def body_aad(row):
    end = field(bytes([row["compression"]])) + field(struct.pack("<Q", row["plain_len"]))
    start = field(bytes([1])) + field(row["tenant"].encode())
    checkpoint = field(uuid.UUID(row["checkpoint_id"]).bytes)
    if "decision_id" in row:
        return b"fermata/edits/1" + start + checkpoint + field(uuid.UUID(row["decision_id"]).bytes) + end
    return (b"fermata/checkpoint/1" + start + field(row["session_id"].encode()) + checkpoint
            + field(struct.pack("<q", row["suspend_seq"])) + field(bytes.fromhex(row["schema_sha256"])) + end)


def wrap_aad(row):
    aad = field(row["kek_id"].encode()) + field(row["tenant"].encode()) + field(uuid.UUID(row["checkpoint_id"]).bytes)
    if "decision_id" in row:
        return b"fermata/edits-wrap/1" + aad + field(uuid.UUID(row["decision_id"]).bytes)
    return b"fermata/wrap/1" + aad


def kek_text(kek):
    check = hashlib.blake2b(kek, digest_size=32).digest()[:4]
    return "FERMATA-KEK-1" + base64.urlsafe_b64encode(kek + check).decode().rstrip("=")


def kek_bytes(text):
    kek = base64.urlsafe_b64decode(text[len("FERMATA-KEK-1"):])[:32]
    if kek_text(kek) != text:
        sys.exit("reference.py: that is no key")
    return kek


def commitment(dek, nonce, tag, aad):
    return hmac.new(kdf(dek, 2, b"fmtapayl"), nonce + tag + aad, hashlib.sha512).digest()[:32]


def seal(row, kek, dek, nonce, wrap_nonce, content):
    aad = body_aad(row)
    body = nonce + aead_seal(kdf(dek, 1, b"fmtapayl"), nonce, aad, content)
    row["body"] = body.hex()
    row["commit"] = commitment(dek, nonce, body[-16:], aad).hex()
    row["wrapped"] = (wrap_nonce + aead_seal(kdf(kek, 1, b"fmtawrap"), wrap_nonce, wrap_aad(row), dek)).hex()
    return row


def unseal(row):
    wrapped, body, aad = bytes.fromhex(row["wrapped"]), bytes.fromhex(row["body"]), body_aad(row)
    dek = aead_open(kdf(kek_bytes(row["kek"]), 1, b"fmtawrap"), wrapped[:24], wrap_aad(row), wrapped[24:])
    if not hmac.compare_digest(commitment(dek, body[:24], body[-16:], aad), bytes.fromhex(row["commit"])):
        sys.exit("reference.py: the commitment does not verify")
    return aead_open(kdf(dek, 1, b"fmtapayl"), body[:24], aad, body[24:])


def raw_zstd(plain):
    """One frame with single blocks that are stored (RFC 8878), then one that repeats a byte."""
    head = bytes.fromhex("28b52ffd") + bytes([0x20, len(plain) + 100])
    stored = struct.pack("<I", len(plain) << 3)[:3] + plain
    repeated = struct.pack("<I", 100 << 3 | 1 << 1 | 1)[:3] + b"."
    return head + stored + repeated


def vectors():
    kek, dek = bytes(range(32)), bytes(range(32, 64))
    base = {"kek_id": "k1-20261130", "tenant": "default", "checkpoint_id": "01936d5e-7a10-7000-8000-00000000c0de"}
    plain = "{\"node\":\"AWAITING_HUMAN_APPROVAL\",\"é\":16.0}".encode()
    checkpoint = dict(base, session_id="SESSION-808", suspend_seq=3, schema_sha256=bytes(range(64, 96)).hex(),
                      compression=0, plain_len=len(plain))
    edits = dict(base, decision_id="01936d5e-7a10-7000-8000-00000000dec1", compression=0, plain_len=len(plain))
    packed = dict(checkpoint, compression=1, plain_len=len(plain) + 100)
    nonces = bytes(range(100, 124)), bytes(range(130, 154))
    rows = {"checkpoint": seal(checkpoint, kek, dek, *nonces, plain), "edits": seal(edits, kek, dek, *nonces, plain),
            "packed": seal(packed, kek, dek, *nonces, raw_zstd(plain))}
    print("kek", kek_text(kek))
    print("wrap_key", kdf(kek, 1, b"fmtawrap").hex())
    body = b"suspend"
    print("digest", hashlib.blake2b(b"fermata/digest/v1" + struct.pack("<Q", len(body)) + body, digest_size=32).hexdigest())
    expire = bytearray(hashlib.blake2b(b"fermata/expire/1" + uuid.UUID(base["checkpoint_id"]).bytes
                                       + struct.pack("<I", 258), digest_size=16).digest())
    expire[6], expire[8] = expire[6] & 0x0F | 0x80, expire[8] & 0x3F | 0x80
    print("expire", uuid.UUID(bytes=bytes(expire)))
    for name, row in rows.items():
        assert unseal(dict(row, kek=kek_text(kek)))
        for key in ("body", "commit", "wrapped"):
            print(name, key, row[key])


if __name__ == "__main__":
    if sys.argv[1:] == ["vectors"]:
        vectors()
    elif sys.argv[1:] == ["open"]:
        sys.stdout.buffer.write(unseal(json.load(sys.stdin)))
    else:
        sys.exit(__doc__)
