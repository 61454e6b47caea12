extension UTType {
    public func conforms(to type: UTType) -> Bool { fatalError() }
    public static var directory: UTType { fatalError() }
    public static var url: UTType { fatalError() }
    public static var pdf: UTType { fatalError() }
}
