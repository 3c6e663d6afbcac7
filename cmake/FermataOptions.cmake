# Compiler, warnings, hardening, sanitizers: one interface target, fermata_options, that every room links.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # for _GNU_SOURCE's functions and the cleanup attribute
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "build type" FORCE)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(FERMATA_WERROR "warnings are errors (CI)" OFF)
option(FERMATA_FAILPOINTS "compile the failpoints in (tests only)" OFF)
set(FERMATA_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize takes them: address,undefined or thread")

add_library(fermata_options INTERFACE)
target_include_directories(fermata_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_link_libraries(fermata_options INTERFACE m) # floor and its kin: gcc has them inline, clang does not
target_compile_definitions(fermata_options INTERFACE _GNU_SOURCE FERMATA_VERSION="${PROJECT_VERSION}")
target_compile_options(fermata_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Wvla
	-Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -fno-omit-frame-pointer)
if(FERMATA_WERROR)
	target_compile_options(fermata_options INTERFACE -Werror)
endif()
if(FERMATA_FAILPOINTS)
	target_compile_definitions(fermata_options INTERFACE FERMATA_FAILPOINTS)
endif()

# Assertions stay on in every build type.
foreach(type RELEASE RELWITHDEBINFO MINSIZEREL)
	string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${type} "${CMAKE_C_FLAGS_${type}}")
endforeach()

include(CheckCCompilerFlag)
include(CheckLinkerFlag)
if(FERMATA_SANITIZE)
	target_compile_options(fermata_options INTERFACE -fsanitize=${FERMATA_SANITIZE} -fno-sanitize-recover=all)
	target_link_options(fermata_options INTERFACE -fsanitize=${FERMATA_SANITIZE})
else()
	# The compiler options hardening guide of the OpenSSF, each one probed.
	foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
		-fno-delete-null-pointer-checks -fno-strict-overflow -ftrivial-auto-var-init=zero)
		string(MAKE_C_IDENTIFIER "have${flag}" have)
		check_c_compiler_flag(${flag} ${have})
		if(${have})
			target_compile_options(fermata_options INTERFACE ${flag})
		endif()
	endforeach()
	if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
		check_c_compiler_flag("-D_FORTIFY_SOURCE=3" have_fortify_3)
		target_compile_options(fermata_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${have_fortify_3}>,3,2>)
	endif()
	foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,nodlopen)
		string(MAKE_C_IDENTIFIER "have${flag}" have)
		check_linker_flag(C ${flag} ${have})
		if(${have} AND NOT flag STREQUAL "-Wl,-z,nodlopen")
			target_link_options(fermata_options INTERFACE ${flag})
		endif()
	endforeach()
endif()

# fermata_room(NAME [FOREIGN imported targets] [KNOWS rooms] [SOURCES files]): the target of a folder.
function(fermata_room name)
	cmake_parse_arguments(ROOM "" "" "FOREIGN;KNOWS;SOURCES" ${ARGN})
	add_library(fermata_${name} STATIC ${ROOM_SOURCES})
	target_link_libraries(fermata_${name} PUBLIC fermata_options)
	foreach(room ${ROOM_KNOWS})
		target_link_libraries(fermata_${name} PUBLIC fermata_${room})
	endforeach()
	target_link_libraries(fermata_${name} PRIVATE ${ROOM_FOREIGN})
endfunction()
