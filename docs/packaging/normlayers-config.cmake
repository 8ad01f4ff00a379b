# find_package(normlayers) makes the target normlayers::normlayers.
if(NOT TARGET normlayers::normlayers)
    get_filename_component(_normlayers_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
    add_library(normlayers::normlayers INTERFACE IMPORTED)
    set_target_properties(normlayers::normlayers PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_normlayers_prefix}/include"
        INTERFACE_COMPILE_OPTIONS "$<$<BOOL:${MSVC}>:/utf-8>"
        INTERFACE_LINK_LIBRARIES "$<$<NOT:$<BOOL:${WIN32}>>:m>")
    unset(_normlayers_prefix)
endif()
