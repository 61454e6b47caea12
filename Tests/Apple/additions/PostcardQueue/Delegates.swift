import Foundation

extension SystemSession: Implements_didSendBodyData, Implements_didReceiveData, Implements_didReceiveChallenge,
    Implements_didCompleteWithError, Implements_didFinishEvents, Implements_didBecomeInvalid,
    Implements_willBeginDelayedRequest
{}
