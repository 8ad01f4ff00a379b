/* stb_image_write.c - the one library the examples use, alone in its translation unit, so that its
   warnings stay its own. */
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
