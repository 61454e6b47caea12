// `import PostcardQueue` brings the client that sends its uploads, and with it the forms and header fields.
@_exported public import PostcardClient
