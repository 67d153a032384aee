#include "EmulatorTest.h"
