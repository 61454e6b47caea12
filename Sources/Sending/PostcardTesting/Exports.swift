// `import PostcardTesting` also imports the client for which an app's tests are written, and the Doctor, which explains
// requests.
@_exported public import PostcardClient
@_exported public import PostcardDoctor
