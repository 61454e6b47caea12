#if !Queue
#error("PostcardQueue needs the trait Queue of this package: .package(url: …, traits: [\"Queue\"])")
#endif
