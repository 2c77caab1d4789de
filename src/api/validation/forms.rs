//! Forms of texts: a regular expression for the schema, and words for people.

/// A text that has to look a certain way.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    pub pattern: &'static str,
    /// Completes "... is not".
    pub words: &'static str,
}

pub const DURATION_OR_NEVER: Form = Form {
    pattern: r"^(([0-9]+(s|m|h))+|Never)$",
    words: "a duration in hours, minutes and seconds, such as `720h` or `1h30m`, or `Never`",
};
pub const DURATION: Form = Form {
    pattern: r"^([0-9]+(s|m|h))+$",
    words: "a duration in hours, minutes and seconds, such as `24h` or `1h30m`",
};
/// The form of the length of a budget's window.
pub const WINDOW: Form = Form {
    pattern: r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$",
    words: "a duration in hours and minutes, such as `8h` or `1h30m`",
};
pub const BUDGET_NODES: Form = Form {
    pattern: r"^((100|[0-9]{1,2})%|[0-9]+)$",
    words: "a number of nodes such as \"5\", or a percentage from \"0%\" to \"100%\"",
};
/// Five fields or a name, with blanks around them. A name must begin the text, though, and five fields must not end
/// with a newline, as a folded text does. What the fields may hold is checked by parsing. Source: the reference's
/// definition, whose parser trims.
pub const SCHEDULE: Form = Form {
    pattern: r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)\s*|\s*\S+(\s+\S+){4}(\s*[^\S\n])?)$",
    words: "a schedule of five fields (minute, hour, day of month, month, day of week) or a name such as `@daily`",
};
/// Source: apimachinery's `resource.Quantity`.
pub const QUANTITY: Form = Form {
    pattern: r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    words: "a quantity: a number with an optional suffix, such as `500m`, `2` or `1.5Gi`",
};
pub const PRICE: Form =
    Form { pattern: r"^[0-9]+(\.[0-9]+)?$", words: "a price in dollars per hour, such as \"0.096\"" };
pub const PRICE_ADJUSTMENT: Form = Form {
    pattern: concat!(r"^([+-]([0-9]*\.)?[0-9]+|\+([0-9]*\.)?[0-9]+%", r"|-(100|[0-9]{1,2}(\.[0-9]+)?)%)$"),
    words: "an adjustment with a sign: dollars per hour such as \"-0.05\", or a share from \"-100%\" up",
};
/// Source: apimachinery's `IsQualifiedName`.
pub const QUALIFIED_NAME: Form = Form {
    pattern: concat!(
        r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
        r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
    ),
    words: "a label key: letters, digits, `-`, `_` and `.`, with an optional domain in small letters before a `/`",
};
/// Source: apimachinery's `IsValidLabelValue`.
pub const LABEL_VALUE: Form = Form {
    pattern: r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
    words: "a label value: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends",
};
/// Source: the reference's definition, which takes no empty one.
pub const TAINT_VALUE: Form = Form {
    pattern: r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    words: "the value of a taint: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends; leave it out for none",
};
pub const GROUP: Form =
    Form { pattern: r"^[^/]*$", words: "an API group: leave out the version, as in `karpenter.k8s.aws`" };
pub const ALIAS: Form =
    Form { pattern: r"^[A-Za-z0-9]+@.+$", words: "an alias of the form `family@version`, such as `al2023@v20240807`" };
pub const SUBNET_ID: Form = Form { pattern: r"^subnet-[0-9a-z]+$", words: "the id of a subnet (`subnet-...`)" };
pub const SECURITY_GROUP_ID: Form = Form { pattern: r"^sg-[0-9a-z]+$", words: "the id of a security group (`sg-...`)" };
pub const AMI_ID: Form = Form { pattern: r"^ami-[0-9a-z]+$", words: "the id of an image (`ami-...`)" };
pub const CAPACITY_RESERVATION_ID: Form =
    Form { pattern: r"^cr-[0-9a-z]+$", words: "the id of a capacity reservation (`cr-...`)" };
pub const PLACEMENT_GROUP_ID: Form =
    Form { pattern: r"^pg-[0-9a-z]+$", words: "the id of a placement group (`pg-...`)" };
pub const ACCOUNT_ID: Form = Form { pattern: r"^[0-9]{12}$", words: "an account id of 12 digits" };
pub const VOLUME_SIZE: Form = Form {
    pattern: concat!(
        r"^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi",
        r"|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G",
        r"|([1-9]|[1-4][0-9]|5[0-8])Ti|([1-9]|[1-5][0-9]|6[0-4])T)$"
    ),
    words: "the size of a volume: 1Gi to 59000Gi, 1G to 64000G, 1Ti to 58Ti, 1T to 64T",
};

/// The versions of `definitions/versions/karpenter.txt`. A unit test there holds this pattern against the file.
pub const KARPENTER_VERSION: Form = Form {
    pattern: r"^v?1\.([0-9]|1[0-4])(\.(0|[1-9][0-9]*))?$",
    words: "a version of Karpenter that is known, from \"1.0\" to \"1.14\"",
};

/// All forms, to find the words for a pattern.
pub const ALL: &[Form] = &[
    DURATION_OR_NEVER,
    DURATION,
    WINDOW,
    BUDGET_NODES,
    SCHEDULE,
    QUANTITY,
    PRICE,
    PRICE_ADJUSTMENT,
    QUALIFIED_NAME,
    LABEL_VALUE,
    TAINT_VALUE,
    GROUP,
    ALIAS,
    SUBNET_ID,
    SECURITY_GROUP_ID,
    AMI_ID,
    CAPACITY_RESERVATION_ID,
    PLACEMENT_GROUP_ID,
    ACCOUNT_ID,
    VOLUME_SIZE,
    KARPENTER_VERSION,
];

/// Schema of a quantity: a whole number, or text.
pub fn quantity() -> schemars::Schema {
    schemars::json_schema!({
        "pattern": QUANTITY.pattern,
        "x-kubernetes-int-or-string": true,
    })
}
