/*
 * Where the stubs are, beside this file in the sources and in the build.
 */
export const stubsRoot = import.meta.dirname
