// `import PostcardClient` also imports the forms that the client sends, and with them header fields and media types.
@_exported public import PostcardForm
