# The version is the header's. Before 1.0 another minor version may have other declarations.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../../include/normlayers.h" PACKAGE_VERSION
    REGEX "^#define NRM_VERSION \"" LIMIT_COUNT 1)
string(REGEX REPLACE ".*\"(.*)\"" "\\1" PACKAGE_VERSION "${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _normlayers_minor "${PACKAGE_VERSION}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR
   (PACKAGE_FIND_VERSION AND NOT PACKAGE_FIND_VERSION MATCHES "^${_normlayers_minor}(\\.|$)"))
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
endif()
