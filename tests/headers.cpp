// Nothing but what the precompiled headers need: a program to belong to (tests/CMakeLists.txt).
