import Foundation

extension URLSessionUploads: Implements_taskIsWaitingForConnectivity, Implements_needNewBodyStream,
    Implements_didSendBodyData, Implements_willPerformHTTPRedirection, Implements_didReceiveResponse,
    Implements_didReceiveData, Implements_didCompleteWithError
{}
