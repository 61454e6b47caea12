// The API for receiving includes the protocols and types of stores.
@_exported public import PostcardStore
