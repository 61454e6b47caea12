// `import PostcardQueue` also imports the client that sends the uploads, the forms and the header fields.
@_exported public import PostcardClient
