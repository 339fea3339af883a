//! What the console shows: its views, and what a dispute is looked up by.

/// One view, under its own fragment of the page's address.
pub(crate) struct View {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) lead: &'static str,
    /// What the list may be narrowed by: the query's name and the label.
    pub(crate) filters: &'static [Field],
}

pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) example: &'static str,
}

/// What a reader may have in hand.
pub(crate) struct Handle {
    pub(crate) id: &'static str,
    pub(crate) label: &'static str,
    pub(crate) fields: &'static [Field],
}

const CUSTOMER: Field = Field { name: "customer_id", label: "Customer", example: "acme" };
const PROVIDER: Field = Field { name: "provider_id", label: "Provider", example: "docs" };
const HOUR: &str = "2026-11-30T12:00:00Z";

pub(crate) const VIEWS: &[View] = &[
    View {
        id: "usage",
        title: "Usage",
        lead: "Tokens by customer, provider and hour, of what is stored and not in conflict. Without other dates: the last 31 days.",
        filters: &[
            CUSTOMER,
            PROVIDER,
            Field { name: "from", label: "From the hour", example: HOUR },
            Field { name: "until", label: "Before the hour", example: HOUR },
        ],
    },
    View {
        id: "statements",
        title: "Statements",
        lead: "What was sealed, in the order of the log. A statement never changes; a late report makes a revision.",
        filters: &[CUSTOMER, Field { name: "hour", label: "Hour", example: HOUR }],
    },
    View {
        id: "conflicts",
        title: "Conflicts",
        lead: "Turns that were reported with two contents. All are kept, none is counted until a person decides.",
        filters: &[],
    },
    View {
        id: "invoices",
        title: "Invoices",
        lead: "What Stripe bills, and what holds it back. Expected is what was placed in the invoice's periods, billed is what its lines count.",
        filters: &[],
    },
];

pub(crate) const HANDLES: &[Handle] = &[
    Handle {
        id: "frame",
        label: "A frame",
        fields: &[PROVIDER, Field { name: "frame_id", label: "Frame", example: "intro" }],
    },
    Handle {
        id: "event",
        label: "A usage event",
        fields: &[Field { name: "event_id", label: "Event", example: "32 hexadecimal digits" }],
    },
    Handle {
        id: "turn",
        label: "A turn",
        fields: &[
            Field { name: "request_id", label: "Request", example: "req-81" },
            Field { name: "turn_id", label: "Turn", example: "7" },
        ],
    },
    Handle {
        id: "statement",
        label: "A statement",
        fields: &[Field { name: "statement_id", label: "Statement", example: "stm_…" }],
    },
    Handle {
        id: "stripe",
        label: "A Stripe meter event",
        fields: &[Field { name: "stripe_identifier", label: "Identifier at Stripe", example: "cm1_…" }],
    },
    Handle {
        id: "line",
        label: "An invoice line",
        fields: &[Field { name: "invoice_line", label: "Invoice line", example: "il_…" }],
    },
];
