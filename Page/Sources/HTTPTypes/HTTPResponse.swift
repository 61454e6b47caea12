/// The response to a request, as far as the Doctor names one.
public enum HTTPResponse {
    public struct Status: Hashable, Sendable, ExpressibleByIntegerLiteral {
        public let code: Int

        public init(code: Int) {
            self.code = code
        }

        public init(integerLiteral code: Int) {
            self.code = code
        }
    }
}
