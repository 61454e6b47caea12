// `import PostcardQueue` also imports the client that sends the uploads, and with it the forms and header fields.
@_exported public import PostcardClient
