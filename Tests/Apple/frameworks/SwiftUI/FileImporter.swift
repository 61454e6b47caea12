public import UniformTypeIdentifiers

extension View {
    @available(tvOS, unavailable)
    @available(watchOS, unavailable)
    nonisolated public func fileImporter(
        isPresented: Binding<Bool>, allowedContentTypes: [UTType], allowsMultipleSelection: Bool,
        onCompletion: @escaping (Result<[URL], any Error>) -> Void
    ) -> some View { ModifiedContent<Self>() }

    nonisolated public func onChange<V: Equatable>(
        of value: V, initial: Bool = false, _ action: @escaping () -> Void
    ) -> some View { ModifiedContent<Self>() }
}
