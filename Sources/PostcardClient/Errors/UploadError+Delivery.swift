import HTTPTypes
import PostcardForm

extension UploadError {
    /// What is known of the form's whereabouts after a failure.
    public enum Delivery: String, Sendable, Hashable {
        /// No server has the whole form: sending it again is safe.
        case neverArrived = "never-arrived"
        /// A server has said that it does not take the form: sending the same again is safe, and useless unless the
        /// reason passes.
        case refused
        /// The whole form went out in this attempt or an earlier one, and what became of it is not known: no answer
        /// came, or one of 500, 502 or 504, with which a server or a proxy before it says that it does not know either.
        /// Sending it again may store it twice, unless the server heeds the `Idempotency-Key`.
        case answerLost = "answer-lost"
        /// A server has taken the form; what failed came after. It must not be sent again.
        case accepted
    }
}

extension UploadResponse {
    /// What a refusal says of the whereabouts of the form that was sent.
    func delivery(of body: FormLayout?) -> UploadError.Delivery {
        guard [500, 502, 504].contains(status.code) else { return .refused }
        // A body that did not come to its end is no form to any server.
        return body?.contentLength.map { bytesSent < $0 } ?? false ? .refused : .answerLost
    }
}

extension UploadError {
    /// Whether the server is still at work on the same form, whose first answer was lost
    /// (draft-ietf-httpapi-idempotency-key-header).
    var isStillUnderWay: Bool {
        delivery == .answerLost && response?.status.code == 409
    }
}

extension UploadError.Code {
    /// What a failure says of the form's whereabouts by itself. Whether the whole form had gone out when a connection
    /// broke is for those to say who know; the worst is taken for granted.
    var usualDelivery: UploadError.Delivery {
        switch self {
        case .refused: .refused
        case .connectionLost, .timedOut, .deadlinePassed, .responseTooLarge: .answerLost
        case .altered, .decoding: .accepted
        default: .neverArrived
        }
    }
}
