// `import PostcardTesting` brings the client that an app's tests send with, and what explains its requests.
@_exported public import PostcardClient
@_exported public import PostcardDoctor
