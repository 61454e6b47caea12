// `import PostcardS3` also imports the protocols and types of stores.
@_exported public import PostcardStore
