// `import PostcardForm` brings the header fields that its declarations are made of. With MemberImportVisibility, an app
// would otherwise have to know and import their module to set a single one.
@_exported public import HTTPTypes
