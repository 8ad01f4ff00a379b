/* folder.h - a temporary folder for a test program, which works in it; it goes at the end. Define
   _XOPEN_SOURCE as 700 before all else. */
#ifndef FOLDER_H
#define FOLDER_H
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char test_folder[1024]; /* its whole path */

static inline void folder_enter(void)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(test_folder, sizeof test_folder, "%.900s/normlayers-test-XXXXXX",
                   base && *base ? base : "/tmp");
    if (mkdtemp(test_folder) && chdir(test_folder) == 0 &&
        getcwd(test_folder, sizeof test_folder) != NULL)
        return;
    perror(test_folder);
    exit(2);
}

static inline void folder_leave(void)
{
    char command[1100];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", test_folder);
    if (chdir("/") != 0 || system(command) != 0) printf("%s is left\n", test_folder);
}
#endif
