// The protocols and types of stores are part of the API for receiving.
@_exported public import PostcardStore
