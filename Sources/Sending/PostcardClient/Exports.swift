// `import PostcardClient` also imports the forms that the client sends, their header fields and media types.
@_exported public import PostcardForm
