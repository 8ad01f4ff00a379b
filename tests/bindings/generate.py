#!/usr/bin/python3
"""generate.py LANGUAGE [double] <docs/api.json - the library for Python (ctypes) or Rust.

The types are those of the header's default, floats with statistics in double, or with "double"
those of NRM_DOUBLE. The Python module has load(PATH): the functions of a shared library.
"""
import json
import re
import sys

api = json.load(sys.stdin)
language, tag = sys.argv[1], "_f64" if "double" in sys.argv[2:] else ""
REAL = ("c_double", "f64") if tag else ("c_float", "f32")
SCALARS = {"nrm_real": REAL, "nrm_acc": ("c_double", "f64"), "int": ("c_int", "i32"),
           "size_t": ("c_size_t", "usize"), "uint32_t": ("c_uint32", "u32"),
           "uint64_t": ("c_uint64", "u64"), "unsigned char": ("c_ubyte", "u8"),
           "char": ("c_char", "i8"), "void": ("None", "c_void")}
CALLBACKS = {t["name"] for t in api["types"] if "function" in t}


def python_type(text):
    base = re.sub(r"const |[ *]", "", text.replace("unsigned char", "unsigned_char"))
    base = base.replace("_char", " char")
    stars = text.count("*") - (base in CALLBACKS)
    if stars and base in ("void", "char"):
        return {"void": "C.c_void_p", "char": "C.c_char_p"}[base]
    name = SCALARS[base][0] if base in SCALARS else base
    name = "C." + name if name.startswith("c_") else name
    return "C.POINTER(" * stars + name + ")" * stars


def rust_type(text):
    base = re.sub(r"const |[ *]", "", text.replace("unsigned char", "unsigned_char"))
    base = base.replace("_char", " char")
    stars = text.count("*") - (base in CALLBACKS)
    name = SCALARS[base][1] if base in SCALARS else base
    first = "*const " if text.startswith("const") else "*mut "
    return "*mut " * (stars - 1) + (first if stars else "") + name


def arguments(f, sep):
    return sep.join(python_type(p["type"]) for p in f["parameters"])


def python():
    print('"""Made by tests/bindings/generate.py: normlayers.h %s by way of ctypes."""\n'
          "import ctypes as C\n" % api["version"])
    for name, values in api["enums"].items():
        for constant, value in values.items():
            print("%s = %d" % (constant, value))
    for t in api["types"]:
        if "function" in t:
            print("\n%s = C.CFUNCTYPE(%s, %s)" % (t["name"], python_type(t["function"]),
                                                  arguments(t, ", ")))
            continue
        print("\n\nclass %s(C.Structure):\n    _fields_ = [" % t["name"])
        for field in t["fields"]:
            kind = python_type(field["type"]) if "type" in field else "C.CFUNCTYPE(%s, %s)" % (
                python_type(field["function"]), arguments(field, ", "))
            if "length" in field:
                kind += " * %d" % field["length"]
            print("        (%r, %s)," % (field["name"], kind))
        print("    ]")
    print("\n\ndef load(path):\n    lib = C.CDLL(path)")
    for f in api["functions"]:
        name = f["name"]
        print("    f = lib.%s = lib.%s%s" % (name, name, tag))
        print("    f.restype, f.argtypes = %s, [%s]" % (python_type(f["returns"]),
                                                       arguments(f, ", ")))
    print("    return lib")


def rust_name(p):
    return "r#in" if p["name"] == "in" else p["name"]


def rust_signature(f, returns):
    text = ", ".join("%s: %s" % (rust_name(p), rust_type(p["type"])) for p in f["parameters"])
    return "(%s)%s" % (text, "" if returns == "void" else " -> " + rust_type(returns))


def rust():
    print("// Made by tests/bindings/generate.py: normlayers.h %s for Rust.\n"
          "#![allow(non_camel_case_types, non_snake_case, dead_code)]\n"
          "use std::os::raw::c_void;" % api["version"])
    for values in api["enums"].values():
        for constant, value in values.items():
            print("pub const %s: i32 = %d;" % (constant, value))
    for t in api["types"]:
        if "function" in t:
            print("pub type %s = Option<unsafe extern \"C\" fn%s>;" % (
                t["name"], rust_signature(t, t["function"])))
            continue
        print("#[repr(C)]\npub struct %s {" % t["name"])
        for field in t["fields"]:
            kind = rust_type(field["type"]) if "type" in field else (
                "Option<unsafe extern \"C\" fn%s>" % rust_signature(field, field["function"]))
            if "length" in field:
                kind = "[%s; %d]" % (kind, field["length"])
            print("    pub %s: %s," % (rust_name(field), kind))
        print("}")
    print('extern "C" {')
    for f in api["functions"]:
        if tag:
            print('    #[link_name = "%s%s"]' % (f["name"], tag))
        print("    pub fn %s%s;" % (f["name"], rust_signature(f, f["returns"])))
    print("}")


{"python": python, "rust": rust}[language]()
