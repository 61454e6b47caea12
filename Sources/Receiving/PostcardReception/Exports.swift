// What stores promise and keep is part of what is received.
@_exported public import PostcardStore
