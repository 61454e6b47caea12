// The declarations of the routes use the types of forms, rules and stores, which this module brings.
@_exported public import PostcardReception
