// The declarations of the routes use types of this module: forms, rules and stores.
@_exported public import PostcardReception
