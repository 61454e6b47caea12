// `import PostcardClient` brings the forms that it sends, and with them header fields and media types.
@_exported public import PostcardForm
