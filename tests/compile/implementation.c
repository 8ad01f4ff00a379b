/* The one file of a program that compiles the functions. Including the header twice, and asking
   twice for the implementation, must be harmless: it happens whenever two headers that are included
   here need normlayers.h themselves. This file is C and C++. */
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
#include "normlayers.h"
#undef NORMLAYERS_IMPLEMENTATION
#define NORMLAYERS_IMPLEMENTATION
#include "normlayers.h"
