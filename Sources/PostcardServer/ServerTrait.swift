#if !Server
#error("PostcardServer needs the trait Server of this package: .package(url: …, traits: [\"Server\"])")
#endif
