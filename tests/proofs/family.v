(* family.v - GN, RMS, NB, BR: group and RMS norm, noise, and renormalization. *)

Require Import base batch_norm layer_norm.

(* ---- GN: K channels of P positions, side by side, share a mean --------------------------- *)

(* Value s of channel c stands at c·P + s; value j belongs to channel j / P. *)
Lemma Sum_flat K P f : Sum (K * P) f = ∑ c < K, ∑ s < P, f (c * P + s)%nat.
Proof.
  induction K; [reflexivity |]. cbn [Sum]. rewrite <- IHK, Nat.mul_succ_l. apply Sum_split.
Qed.
Lemma channel P c s : (s < P)%nat -> ((c * P + s) / P)%nat = c.
Proof. intros H. rewrite Nat.div_add_l, Nat.div_small by lia. lia. Qed.

Section Group.
Variables (K P : nat) (ε : R) (γ β x : nat -> R).
Notation M := (K * P)%nat.
Hypothesis M_pos : (0 < M)%nat.
Hypothesis root : 0 < var M x + ε.
Notation "⟨ f ⟩" := (mean M f).
Notation μ := (mean M x).
Notation r := (rstd M ε x).
Notation "x̂" := (normalized M ε x).
Notation "f @ c , s" := (f (c * P + s)%nat) (at level 9, c at level 9, s at level 9).

Definition gn (γ β x : nat -> R) : nat -> R :=
  ln M ε (fun j => γ (j / P)%nat) (fun j => β (j / P)%nat) x.

(* GN.1: μ = (1/M)·∑_c ∑ₛ x_cs *)
Theorem GN_1 : μ = 1 / M * ∑ c < K, ∑ s < P, x@c,s.
Proof. unfold mean. rewrite Sum_flat. field. apply count_ne0, M_pos. Qed.

(* GN.2: r = 1/√((1/M)·∑_c ∑ₛ (x_cs − μ)² + ε) *)
Theorem GN_2 : r = 1 / sqrt (1 / M * (∑ c < K, ∑ s < P, (x@c,s - μ) ^ 2) + ε).
Proof.
  unfold rstd, var. rewrite Sum_flat. do 3 f_equal. field. apply count_ne0, M_pos.
Qed.

(* GN.3: y_cs = γ_c·(x_cs − μ)·r + β_c *)
Theorem GN_3 c s : (s < P)%nat -> (gn γ β x)@c,s = γ c * (x@c,s - μ) * r + β c.
Proof.
  intros H. unfold gn, ln, affine, normalized. rewrite channel by exact H. ring.
Qed.

(* GN.6: ⟨g⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs, ⟨g·x̂⟩ = (1/M)·∑_c γ_c·∑ₛ dy_cs·x̂_cs *)
Theorem GN_6 dy : let g := (fun j => γ (j / P)%nat * dy j) in
  ⟨g⟩ = 1 / M * (∑ c < K, γ c * ∑ s < P, dy@c,s) /\
  ⟨g · x̂⟩ = 1 / M * (∑ c < K, γ c * ∑ s < P, dy@c,s * x̂@c,s).
Proof.
  intros g. assert (H : forall f, ⟨fun j => γ (j / P)%nat * f j⟩
                        = 1 / M * (∑ c < K, γ c * ∑ s < P, f@c,s)).
  { intros f. rewrite mean_is, Sum_flat.
    rewrite (Sum_ext K _ (fun c => γ c * ∑ s < P, f@c,s)).
    - field. apply count_ne0, M_pos.
    - intros c. rewrite <- Sum_scal. apply Sum_ext_lt. intros s S. rewrite channel by exact S.
      reflexivity. }
  split; [apply H |]. rewrite <- (H (dy · x̂)). apply mean_ext. intros; unfold g; ring.
Qed.

(* GN.7: dx_cs = r·(γ_c·dy_cs − ⟨g⟩ − x̂_cs·⟨g·x̂⟩), for any loss *)
Theorem GN_7 L dy : let g := (fun j => γ (j / P)%nat * dy j) in
  gradient M L (gn γ β x) dy ->
  exists dx, gradient M (fun x => L (gn γ β x)) x dx /\
  forall c s, (s < P)%nat -> dx@c,s = r * (γ c * dy@c,s - ⟨g⟩ - x̂@c,s * ⟨g · x̂⟩).
Proof.
  intros g dL. exists (fun j => r * (g j - ⟨g⟩ - x̂ j * ⟨g · x̂⟩)). split.
  - pose proof (LN_14 M ε (fun j => γ (j / P)%nat) (fun j => β (j / P)%nat) x M_pos root L dy dL).
    replace g with (fun j => dy j * γ (j / P)%nat); [assumption |].
    apply functional_extensionality; intros; unfold g; ring.
  - intros c s S. unfold g at 1. rewrite channel by exact S. reflexivity.
Qed.

(* GN.8: dx_cs = r·(γ_c·dy_cs + (t·(x_cs − h) + b)), t = −r·⟨g·x̂⟩, b = −⟨g⟩ − t·(μ − h) *)
Theorem GN_8 dy g h c s : let t := - r * ⟨g · x̂⟩ in let b := - ⟨g⟩ - t * (μ - h) in
  r * (γ c * dy@c,s + (t * (x@c,s - h) + b)) =
  r * (γ c * dy@c,s - ⟨g⟩ - x̂@c,s * ⟨g · x̂⟩).
Proof. intros t b. unfold b, t. set (q := ⟨g · x̂⟩). unfold normalized. ring. Qed.
End Group.

(* The parameters of C channels; N examples, each with its own x̂, which does not depend on them. *)
Section Group_parameters.
Variables (N C P : nat) (γ β : nat -> R) (xh dy : nat -> nat -> R).
Variable L : (nat -> nat -> R) -> R.
Notation y γ β := (fun n j => γ (j / P)%nat * xh n j + β (j / P)%nat).
Hypothesis dL : gradient2 N (C * P) L (y γ β) dy.

(* GN.4: dβ_c = ∑ₙ ∑ₛ dy_ncs *)
Theorem GN_4 : gradient C (fun β => L (y γ β)) β
  (fun c => ∑ n < N, ∑ s < P, dy n (c * P + s)%nat).
Proof.
  intros p t d [E F]. eapply d_eq; [apply (dL _ _ (fun n j => d (j / P)%nat)) |].
  - split; [rewrite E; reflexivity |]. intros n j. eapply d_eq; [rate | ring].
  - rewrite (Sum_ext N _ (fun n => ∑ c < C, d c * ∑ s < P, dy n (c * P + s)%nat)).
    + rewrite Sum_swap. apply Sum_ext; intros c. apply Sum_scal.
    + intros n. rewrite Sum_flat. apply Sum_ext; intros c. rewrite <- Sum_scal.
      apply Sum_ext_lt; intros s S. rewrite channel by exact S. reflexivity.
Qed.

(* GN.5: dγ_c = ∑ₙ ∑ₛ dy_ncs·x̂_ncs *)
Theorem GN_5 : gradient C (fun γ => L (y γ β)) γ
  (fun c => ∑ n < N, ∑ s < P, dy n (c * P + s)%nat * xh n (c * P + s)%nat).
Proof.
  intros p t d [E F]. eapply d_eq; [apply (dL _ _ (fun n j => d (j / P)%nat * xh n j)) |].
  - split; [rewrite E; reflexivity |]. intros n j. eapply d_eq; [rate | ring].
  - rewrite (Sum_ext N _ (fun n => ∑ c < C, d c *
      ∑ s < P, dy n (c * P + s)%nat * xh n (c * P + s)%nat)).
    + rewrite Sum_swap. apply Sum_ext; intros c. apply Sum_scal.
    + intros n. rewrite Sum_flat. apply Sum_ext; intros c. rewrite <- Sum_scal.
      apply Sum_ext_lt; intros s S. rewrite channel by exact S. ring.
Qed.
End Group_parameters.

(* ---- RMS: no mean ------------------------------------------------------------------------ *)

(* RMS.1: q = (1/D)·∑ⱼ xⱼ², r = 1/√(q + ε) *)
Definition rms_q (D : nat) (x : nat -> R) : R := (∑ j < D, x j ^ 2) / D.
Definition rms_r (D : nat) (ε : R) (x : nat -> R) : R := 1 / sqrt (rms_q D x + ε).
Definition rms_hat (D : nat) (ε : R) (x : nat -> R) (i : nat) : R := x i * rms_r D ε x.

Section Rms.
Variables (D : nat) (ε : R) (γ x : nat -> R).
Hypothesis D_pos : (0 < D)%nat.
Hypothesis root : 0 < rms_q D x + ε.
Notation "⟨ f ⟩" := (mean D f).
Notation r := (rms_r D ε x).
Notation "x̂" := (rms_hat D ε x).

Lemma rms_sqr : r ^ 2 * (rms_q D x + ε) = 1.
Proof.
  unfold rms_r. pose proof (sqrt_lt_R0 _ root).
  rewrite <- (sqrt_sqrt (rms_q D x + ε)) at 2 by lra. field; lra.
Qed.

Lemma along_rms p t d : path p t x d ->
  path (fun s => rms_hat D ε (p s)) t x̂ (fun i => r * (d i - x̂ i * ⟨x̂ · d⟩)).
Proof.
  intros [E F]. split; [rewrite E; reflexivity |]. pose proof (sqrt_lt_R0 _ root) as S.
  assert (Dr : is_derive (fun s => rms_r D ε (p s)) t (- r ^ 2 * ⟨x̂ · d⟩)).
  { unfold rms_r at 1. eapply d_eq.
    - apply d_div; [apply d_const | |]; [apply d_sqrt | rewrite E; lra].
      + unfold rms_q. rate.
      + rewrite E; exact root.
    - cbv beta. rewrite E, (mean_is D (fun i => x̂ i * d i)).
      rewrite (Sum_lin1 D 2 (fun i => x i * d i) (fun i => 2 * x i * d i)) by termwise.
      rewrite (Sum_lin1 D r (fun i => x i * d i) (fun i => x̂ i * d i))
        by (unfold rms_hat; termwise).
      unfold rms_r. field. split; [lra | apply count_ne0, D_pos]. }
  intros i. unfold rms_hat at 1. eapply d_eq; [rate |]. cbv beta. rewrite E.
  unfold rms_hat at 2. ring.
Qed.

(* RMS.4: dxᵢ = r·(gᵢ − x̂ᵢ·⟨g·x̂⟩), g = dy·γ, for any loss of yᵢ = γᵢ·xᵢ·r (RMS.2) *)
Theorem RMS_4 L dy : let g := (fun i => dy i * γ i) in
  gradient D L (fun i => γ i * x i * r) dy ->
  gradient D (fun x => L (fun i => γ i * x i * rms_r D ε x)) x
    (fun i => r * (g i - x̂ i * ⟨g · x̂⟩)).
Proof.
  intros g. apply (chain D D L (fun x i => γ i * x i * rms_r D ε x) x
                     (fun d i => γ i * (r * (d i - x̂ i * ⟨x̂ · d⟩)))).
  - intros p t d P. destruct (along_rms p t d P) as [_ F]. destruct P as [E _].
    split; [rewrite E; reflexivity |]. intros i.
    apply (is_derive_ext (fun s => γ i * rms_hat D ε (p s) i)).
    + intros. unfold rms_hat. rewrite Rmult_assoc. reflexivity.
    + apply d_scal, F.
  - intros d. rewrite <- (uncentred_adjoint D r x̂ g d). apply Sum_ext; unfold g; termwise.
Qed.

(* RMS.5: ∑ᵢ dxᵢ·x̂ᵢ = D·ε·r³·⟨g·x̂⟩ *)
Theorem RMS_5 g : ∑ i < D, r * (g i - x̂ i * ⟨g · x̂⟩) * x̂ i = D * ε * r ^ 3 * ⟨g · x̂⟩.
Proof.
  transitivity (r * Sum D (g · x̂) + (- r ^ 3 * ⟨g · x̂⟩) * ∑ i < D, x i ^ 2).
  - apply Sum_lin2. intros; cbv beta. generalize ⟨g · x̂⟩. unfold rms_hat. intros; ring.
  - replace (∑ i < D, x i ^ 2) with (D * rms_q D x)
      by (unfold rms_q; field; apply count_ne0, D_pos).
    rewrite (Sum_mean D (g · x̂)) by exact D_pos. pose proof rms_sqr as Q.
    transitivity (D * r * ⟨g · x̂⟩ * (1 - r ^ 2 * rms_q D x)); [ring |].
    replace (1 - r ^ 2 * rms_q D x) with (ε * r ^ 2) by lra. ring.
Qed.
End Rms.

(* ---- RES: a residual is added before the norm, and the sum goes on beside it -------------- *)

(* RES.2: dxᵢ = deᵢ = aᵢ + bᵢ, for a loss that meets u = x + e through the norm (A, whose gradient a
   at u is LN.14 or RMS.4) and beside it (B) *)
Theorem RES_2 D A B x e a b : let u := (fun i => x i + e i) in
  gradient D A u a -> gradient D B u b ->
  gradient D (fun x => let u := (fun i => x i + e i) in A u + B u) x (fun i => a i + b i) /\
  gradient D (fun e => let u := (fun i => x i + e i) in A u + B u) e (fun i => a i + b i).
Proof.
  intros u GA GB.
  assert (G : gradient D (fun u => A u + B u) u (fun i => a i + b i)).
  { intros p t d P. eapply d_eq; [apply d_plus; [apply GA, P | apply GB, P] |].
    rewrite <- Sum_plus. apply Sum_ext; termwise. }
  split.
  - intros p t d [E F]. apply (G (fun s i => p s i + e i)). split.
    + rewrite E. reflexivity.
    + intros i. eapply d_eq; [apply d_plus; [apply F | apply d_const] | ring].
  - intros p t d [E F]. apply (G (fun s i => x i + p s i)). split.
    + rewrite E. reflexivity.
    + intros i. eapply d_eq; [apply d_plus; [apply d_const | apply F] | ring].
Qed.

(* RMS.3: dγᵢ = ∑ₙ dyₙᵢ·x̂ₙᵢ *)
Theorem RMS_3 N D ε γ (x : nat -> nat -> R) L dy :
  gradient2 N D L (fun n i => γ i * x n i * rms_r D ε (x n)) dy ->
  gradient D (fun γ => L (fun n i => γ i * x n i * rms_r D ε (x n))) γ
    (fun i => ∑ n < N, dy n i * rms_hat D ε (x n) i).
Proof.
  intros dL p t d [E F].
  eapply d_eq; [apply (dL _ _ (fun n i => d i * x n i * rms_r D ε (x n))) |].
  - split; [rewrite E; reflexivity |]. intros n i. eapply d_eq; [rate | ring].
  - rewrite Sum_swap. apply Sum_ext; intros i. rewrite <- Sum_scal.
    apply Sum_ext; unfold rms_hat; termwise.
Qed.

(* ---- NB: noise --------------------------------------------------------------------------- *)

Lemma uniform_mean a b : a < b -> is_RInt (fun u => u / (b - a)) a b ((a + b) / 2).
Proof.
  intros H. replace ((a + b) / 2) with (minus (b ^ 2 / (2 * (b - a))) (a ^ 2 / (2 * (b - a)))).
  - apply (is_RInt_derive (fun u => u ^ 2 / (2 * (b - a)))).
    + intros u _. eapply d_eq; [apply d_divc, d_sqr, d_id |]. cbv beta. field. lra.
    + intros u _. apply (ex_derive_continuous (fun u => u / (b - a))).
      exists (1 / (b - a)). apply d_divc, d_id.
  - unfold minus, plus, opp; simpl. field. lra.
Qed.

(* NB.6: E[s] = (1 + n_σ)/2, E[m] = 0. An expectation is the integral over the density, 1/(b − a)
   between a and b. Given σ_c the expectation of s is σ_c, given μ_c that of m is μ_c. *)
Theorem NB_6 n_σ n_μ r_μ c : 1 < n_σ -> 0 < n_μ -> 0 < r_μ ->
  is_RInt (fun σ => σ / (n_σ - 1)) 1 n_σ ((1 + n_σ) / 2) /\
  is_RInt (fun m => m / (c + r_μ - (c - r_μ))) (c - r_μ) (c + r_μ) c /\
  is_RInt (fun c => c / (n_μ - - n_μ)) (- n_μ) n_μ 0.
Proof.
  intros S N P. pose proof (uniform_mean (c - r_μ) (c + r_μ)) as A.
  pose proof (uniform_mean (- n_μ) n_μ) as B.
  replace ((c - r_μ + (c + r_μ)) / 2) with c in A by field.
  replace ((- n_μ + n_μ) / 2) with 0 in B by field.
  repeat split; [apply uniform_mean, S | apply A; lra | apply B; lra].
Qed.

(* NB.7: dyᵢ = sᵢ·dzᵢ for zᵢ = sᵢ·yᵢ + mᵢ (NB.5) *)
Theorem NB_7 n L s m y dz : gradient n L (fun i => s i * y i + m i) dz ->
  gradient n (fun y => L (fun i => s i * y i + m i)) y (fun i => s i * dz i).
Proof. apply gradient_affine. Qed.

(* ---- BR: renormalization ----------------------------------------------------------------- *)

Definition clip (low high a : R) : R := Rmax low (Rmin high a).

Section Renorm.
Variables (M : nat) (ε γ β m u ρ_max d_max : R) (x : nat -> R).
Hypothesis M_pos : (0 < M)%nat.
Hypothesis root : 0 < var M x + ε.
Notation "⟨ f ⟩" := (mean M f).
Notation μ := (mean M x).
Notation r := (rstd M ε x).
Notation "x̂" := (normalized M ε x).

(* ρ and d before and after their limits *)
Notation ρ0 := (sqrt (var M x + ε) / sqrt (u + ε)).
Notation d0 := ((μ - m) / sqrt (u + ε)).
Notation ρ := (clip (1 / ρ_max) ρ_max ρ0).
Notation d := (clip (- d_max) d_max d0).

Lemma clip_inside low high a : low <= a <= high -> clip low high a = a.
Proof. intros [A B]. unfold clip. rewrite Rmin_right, Rmax_right; lra. Qed.

(* BR.1: ρ = √(v + ε)/√(u + ε), kept within 1/ρ_max and ρ_max: with the limit 1, ρ is 1. *)
Theorem BR_1 : 1 <= ρ_max -> 1 / ρ_max <= ρ <= ρ_max /\ (ρ_max = 1 -> ρ = 1).
Proof.
  intros H. assert (1 / ρ_max <= ρ_max).
  { apply Rmult_le_reg_r with ρ_max; [lra |]. unfold Rdiv.
    rewrite Rmult_assoc, Rinv_l by lra. nra. }
  assert (1 / ρ_max <= ρ <= ρ_max).
  { unfold clip, Rmax, Rmin. repeat destruct Rle_dec; lra. }
  split; [assumption |]. intros E. rewrite E in *. lra.
Qed.

(* BR.2: d = (μ − m)/√(u + ε), kept within ±d_max: with the limit 0, d is 0. *)
Theorem BR_2 : 0 <= d_max -> - d_max <= d <= d_max /\ (d_max = 0 -> d = 0).
Proof.
  intros H. assert (- d_max <= d <= d_max).
  { unfold clip, Rmax, Rmin. repeat destruct Rle_dec; lra. }
  split; [assumption | lra].
Qed.

(* BR.3: yᵢ = γ·(ρ·x̂ᵢ + d) + β: where neither limit applies, that is the output of inference,
   BN.11. *)
Theorem BR_3 i : 0 < u + ε -> 1 / ρ_max <= ρ0 <= ρ_max -> - d_max <= d0 <= d_max ->
  γ * (ρ * x̂ i + d) + β = γ * (x i - m) / sqrt (u + ε) + β.
Proof.
  intros U A B. rewrite !clip_inside by assumption. unfold normalized, rstd.
  pose proof (sqrt_lt_R0 _ root). pose proof (sqrt_lt_R0 _ U). field. lra.
Qed.

(* ρ and d are constants of the step, whatever they are. *)
Section Step.
Variables (ρ d : R) (L : (nat -> R) -> R) (dy : nat -> R).
Hypothesis dL : gradient M L (fun i => γ * (ρ * x̂ i + d) + β) dy.

(* BR.4: dγ = ∑ᵢ dyᵢ·(ρ·x̂ᵢ + d) = ρ·∑ᵢ dyᵢ·x̂ᵢ + d·∑ᵢ dyᵢ *)
Theorem BR_4 : is_derive (fun γ => L (fun i => γ * (ρ * x̂ i + d) + β)) γ
    (∑ i < M, dy i * (ρ * x̂ i + d)) /\
  ∑ i < M, dy i * (ρ * x̂ i + d) = ρ * (∑ i < M, dy i * x̂ i) + d * ∑ i < M, dy i.
Proof.
  split; [| apply Sum_lin2; termwise].
  eapply d_eq; [apply (dL _ _ (fun i => ρ * x̂ i + d)) |].
  - split; [reflexivity |]. intros i. eapply d_eq; [rate | ring].
  - apply Sum_ext; termwise.
Qed.

(* BR.5: dxᵢ = (γ·ρ)·r·(dyᵢ − ⟨dy⟩ − x̂ᵢ·⟨dy·x̂⟩) *)
Theorem BR_5 : gradient M (fun x => L (fun i => γ * (ρ * normalized M ε x i + d) + β)) x
    (fun i => (γ * ρ) * r * (dy i - ⟨dy⟩ - x̂ i * ⟨dy · x̂⟩)).
Proof.
  assert (E : forall y, (fun i => γ * (ρ * normalized M ε y i + d) + β) =
                        bn M ε (γ * ρ) (γ * d + β) y).
  { intros y; apply functional_extensionality; intros i. unfold bn; ring. }
  pose proof dL as dL'. rewrite E in dL'. intros p t q P.
  apply (is_derive_ext (fun s => L (bn M ε (γ * ρ) (γ * d + β) (p s)))).
  - intros s. rewrite E. reflexivity.
  - exact (BN_19 M ε (γ * ρ) (γ * d + β) x M_pos root L dy dL' p t q P).
Qed.
End Step.
End Renorm.
