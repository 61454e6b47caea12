// `import PostcardAsyncHTTP` also imports the client that uses the transport, and with it the forms and header fields.
@_exported public import PostcardClient
