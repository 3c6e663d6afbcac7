# cmake -D NAMES="A;B" -D FOLDER=... -D OUTPUT=texts.c -P embed.cmake
# Writes the table of texts.h. Bytes, not string literals: C promises only 4095 characters of those.
set(arrays "")
set(rows "")
foreach(name ${NAMES})
	file(READ ${FOLDER}/${name}.avsc hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
	string(REGEX REPLACE "(....................................................................................................)"
		"\t\\1\n" bytes "${bytes}")
	string(APPEND arrays "static const uint8_t ${name}[] = {\n${bytes}\n};\n\n")
	string(APPEND rows "\t{ \"${name}\", { ${name}, sizeof(${name}) } },\n")
endforeach()
file(WRITE ${OUTPUT}
	"/* Made by schemas/embed.cmake from the .avsc files. */\n#include \"schemas/texts.h\"\n\n"
	"${arrays}const struct schema_text schema_texts[SCHEMA_TEXTS] = {\n${rows}};\n")
