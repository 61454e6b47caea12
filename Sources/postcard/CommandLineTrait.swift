#if !CommandLine
#error("The postcard program needs the trait CommandLine of this package, which is on by default")
#endif
