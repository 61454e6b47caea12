/// An error of an interceptor. It says nothing about the form; the failure before it does.
package struct InterceptorError: Error {
    package let cause: any Error
    /// The failure of the last attempt; `nil` if nothing was sent before.
    package let failure: UploadError?
}
