// `import PostcardStore` also imports the forms that are stored.
@_exported public import PostcardForm
