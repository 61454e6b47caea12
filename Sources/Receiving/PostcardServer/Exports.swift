// What is received, and by which rules, is part of the routes' declarations. With it come the stores.
@_exported public import PostcardReception
