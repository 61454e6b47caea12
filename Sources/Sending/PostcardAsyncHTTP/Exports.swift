// `import PostcardAsyncHTTP` brings the client that it is a transport for, and with it the forms and header fields.
@_exported public import PostcardClient
