// Gives the precompiled header (runtime/Pch.h) a translation unit to live in.
