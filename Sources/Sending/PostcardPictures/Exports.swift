// `import PostcardPictures` also imports the forms that pictures are added to.
@_exported public import PostcardForm
