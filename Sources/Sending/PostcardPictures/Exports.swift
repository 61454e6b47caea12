// `import PostcardPictures` brings the forms that pictures are parts of.
@_exported public import PostcardForm
