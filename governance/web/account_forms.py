"""The forms of a person's own account, which the pages behind mailed links and the sign-in use, too."""

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from governance.accounts.factors import second_factor_pass
from governance.accounts.own_details import LONGEST_NAME
from governance.accounts.passwords import LONGEST_PASSWORD
from governance.accounts.rules import FirstFactor
from governance.web.page_forms import PageForm
from governance.web.sessions import client_address, request_id


class AddressForm(PageForm):
    """The address of a person. An unknown one is answered like a known one."""

    email = forms.CharField(
        label=_("E-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )


class SignInForm(AddressForm):
    """An address and a password."""

    password = forms.CharField(
        label=_("Password"),
        max_length=LONGEST_PASSWORD,
        required=False,  # an empty one is a failed attempt like others
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "required": True}),
    )


class NewPasswordForm(PageForm):
    """A new password."""

    new = forms.CharField(
        label=_("New password"),
        max_length=LONGEST_PASSWORD,
        strip=False,
        help_text=_("At least 10 characters, and not a common one."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "minlength": 10}),
    )


class PasswordForm(NewPasswordForm):
    """A new password, and the present one, which a person without a password leaves out."""

    field_order = ("current", "new")

    current = forms.CharField(
        label=_("Present password"),
        max_length=LONGEST_PASSWORD,
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "required": True}),
    )


class CodeForm(PageForm):
    """A code of an authenticator app, or a recovery code."""

    code = forms.CharField(
        label=_("Code of the app, or a recovery code"),
        max_length=40,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "one-time-code", "autofocus": True}),
    )

    def pass_second_factor(self, request: HttpRequest, first: FirstFactor) -> None:
        """Check the code. Raises Invalid."""
        second_factor_pass(
            first=first,
            request_id=request_id(request),
            address=client_address(request),
            **self.cleaned_data,
        )


class NameForm(PageForm):
    """The name by which others see a person."""

    name = forms.CharField(
        label=_("The name that others see"),
        max_length=LONGEST_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


class TimeZoneForm(PageForm):
    """The time zone in which a person sees times."""

    timezone = forms.CharField(
        label=_("Time zone of pages"), max_length=64, widget=forms.TextInput(attrs={"list": "zones"})
    )
