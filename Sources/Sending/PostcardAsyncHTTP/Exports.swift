// `import PostcardAsyncHTTP` also imports the client that uses the transport, the forms and the header fields.
@_exported public import PostcardClient
