// The declarations of the routes use types of PostcardReception: forms, rules and stores.
@_exported public import PostcardReception
