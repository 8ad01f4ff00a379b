/* stb_image_write.c - the one library the examples use, alone in its translation unit, so that its
   warnings stay its own. */
#ifdef __has_include
#if !__has_include(<stb_image_write.h>)
#error "stb_image_write.h is not here: `make deps` installs it, `make STB=/its/folder` names it"
#endif
#endif
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
