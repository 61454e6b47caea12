#if !Server
#error("PostcardReceiver needs the trait Server of this package: .package(url: …, traits: [\"Server\"])")
#endif
