// Gives the precompiled header (ir/Pch.h) a translation unit to live in.
